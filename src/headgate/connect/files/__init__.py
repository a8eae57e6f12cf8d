"""Files as streams, as tables and as bounded inputs."""

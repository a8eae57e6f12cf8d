"""Files as streams and as bounded inputs."""

"""The checkpoint of a flow: manifests, state, tuples, answers."""

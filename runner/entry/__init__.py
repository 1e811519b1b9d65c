"""The supervisor of one attempt, standard library only, shipped whole to every backend."""

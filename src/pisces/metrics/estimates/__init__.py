"""How far metrics of estimated MDPs may be from those of the true ones."""

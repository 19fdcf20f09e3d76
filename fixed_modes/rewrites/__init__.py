"""Graph rewrites that both back ends share."""

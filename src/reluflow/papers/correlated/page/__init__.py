"""The page of the paper's runs."""

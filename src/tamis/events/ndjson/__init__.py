"""Events as lines of JSON: ``lines`` cuts what is read, ``reader`` reads many lines at once."""

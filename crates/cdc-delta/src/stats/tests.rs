//! Every bound holds every value, whichever way a reader parses it.

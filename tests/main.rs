//! Every test that looks at turnback from outside, in one binary.

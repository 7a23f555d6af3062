"""SBUF and PSUM, and the streams of elements that engines read from and write to them."""

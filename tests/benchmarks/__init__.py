"""The harness of the benchmarks, on tiny documents and programs that misbehave."""

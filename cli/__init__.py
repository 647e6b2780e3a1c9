"""The DAG and the command line: the only place that knows everything below."""

"""Permission policy: which tool calls run, which need approval and which are denied."""

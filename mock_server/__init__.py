"""The mock accounting cloud: a server to practise loads on. It shares no code with saasload."""

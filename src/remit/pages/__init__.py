"""The console: pages in a browser over the service, made on the server, that work without JavaScript too."""

"""The service that every face calls: one noun per file, behind one `Service`."""

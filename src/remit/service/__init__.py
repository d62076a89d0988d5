"""What every face calls: one noun per file, behind one `Service`."""

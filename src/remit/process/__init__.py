"""Child processes: started with little of our environment, watched, and ended with all that they started."""

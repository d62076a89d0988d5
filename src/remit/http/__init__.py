"""HTTP for every face: who may connect, what they may do, how they are refused, and serving itself."""

"""Golden jobs: recorded jobs in files, which today's code, tools, schemas and policy are checked against."""

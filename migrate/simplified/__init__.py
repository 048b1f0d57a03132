"""What libraries do around a model beside computing, in few lines: what a model that is moved takes in its place."""

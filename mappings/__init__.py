"""What corresponds: the tables of torch things and their MindSpore counterparts, and the verbs they use."""

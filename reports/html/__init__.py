"""The report as one self-contained HTML page: templates and scripts are next to the code that fills them."""

"""The report as one self-contained HTML page: templates and scripts stand beside the code that fills them."""

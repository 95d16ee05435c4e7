"""The revisions. A file is named ``NNNN_title.py`` and its revision is NNNN; a test holds it to that."""

// Filters and sorts the rows of evidence.html.

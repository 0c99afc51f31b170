"""The JSON that the reports print, a typed class a document, built where it is declared."""

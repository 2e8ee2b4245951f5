SELECT U&"n\0061me" FROM U&"p\0061tients"

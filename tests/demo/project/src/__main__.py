from greeting import greet

print(greet("crew"))

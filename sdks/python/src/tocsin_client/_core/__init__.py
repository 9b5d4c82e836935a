"""What the client decides, without any input or output: generators that yield what to do and are sent what came of it."""

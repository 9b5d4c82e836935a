"""Single sign-on: people, and programs with tokens, by an OpenID Connect provider."""

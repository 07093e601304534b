"""Who is whose among pods, what each tenant is entitled to, and how that compares with what it asks for and uses. Pure."""

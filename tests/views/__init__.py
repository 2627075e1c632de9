"""Views: stores that are kept up from their changelogs."""

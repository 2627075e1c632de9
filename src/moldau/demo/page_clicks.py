"""What is deployed of the application page-clicks: `moldau streams describe` shows it in the platform."""

from moldau.demo.applications import page_clicks

builder = page_clicks()

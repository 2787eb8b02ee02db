"""Conversations that only `whyfor import` brings: exports of web chats, and other tools' files."""

"""Five chats in which something went wrong, as logs, and what the commands say of them."""

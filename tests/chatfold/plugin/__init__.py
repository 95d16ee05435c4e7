"""The pytest plug-in, as projects meet it: each test runs pytest over a small project of its own."""

"""`python -m duetime.cli`, by which a supervisor starts its workers."""

from duetime.cli.main import main

if __name__ == "__main__":
    main()

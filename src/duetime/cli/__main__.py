"""`python -m duetime.cli`: how a supervisor starts its workers."""

from duetime.cli.main import main

if __name__ == "__main__":
    main()

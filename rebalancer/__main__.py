"""``python -m rebalancer`` is the command `rebalancer`."""

from rebalancer.cli.main import main

if __name__ == "__main__":
    main()

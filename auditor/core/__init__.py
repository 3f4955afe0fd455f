"""What every room needs: values, the plan, errors, the registry, files."""

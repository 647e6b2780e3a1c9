"""One-off measurements that no report needs: ``python -m studies.NAME``. Nothing imports them."""

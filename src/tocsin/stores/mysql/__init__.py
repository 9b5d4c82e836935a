"""The store on MySQL, MariaDB and TiDB."""

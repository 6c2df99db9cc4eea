/* A shared library that is no plugin. */
int nothing_to_see_here(void);
int nothing_to_see_here(void)
{
    return 0;
}

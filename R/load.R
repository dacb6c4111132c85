# What is done when the package is loaded.

.onLoad <- function(libname, pkgname) {
  start_engine()
  when_loaded("marginaleffects", tell_marginaleffects)
  when_loaded("mlr3", tell_mlr3)
  when_loaded("parsnip", tell_parsnip)
}

# Now, or as soon as `package` is loaded.
when_loaded <- function(package, tell) {
  if (isNamespaceLoaded(package)) tell() else setHook(packageEvent(package, "onLoad"), tell)
}

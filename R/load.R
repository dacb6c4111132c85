# Runs when the package is loaded.

.onLoad <- function(libname, pkgname) {
  start_engine()
  when_loaded("marginaleffects", tell_marginaleffects)
  when_loaded("mlr3", tell_mlr3)
  when_loaded("parsnip", tell_parsnip)
}

# Calls `register` now, or as soon as `package` is loaded.
when_loaded <- function(package, register) {
  if (isNamespaceLoaded(package)) register() else setHook(packageEvent(package, "onLoad"), register)
}

# Objects of the packages sf, sp, terra and stars as data and as new rows. A fit sees a data frame with two more columns
# for the place, which its formula gets: sphere(lon, lat) for longitudes and latitudes, x + y for other coordinates.

spatial_classes <- c("sf", "sfc", "Spatial", "SpatVector", "SpatRaster", "stars")

is_spatial <- function(x) inherits(x, spatial_classes)

# Returns list(values = data frame, at = matrix of coordinates, crs = text or NULL, geographic) of a spatial object.
# Lines and polygons stand at their centroids.
spatial_parts <- function(x, argument) {
  none <- function(n) data.frame(row.names = seq_len(n))
  kind <- spatial_classes[vapply(spatial_classes, function(class) inherits(x, class), NA)][1L]
  if (kind %in% c("sf", "sfc")) {
    places <- sf::st_geometry(x)
    if (!all(sf::st_is(places, "POINT"))) places <- suppressWarnings(sf::st_centroid(places))
    values <- if (kind == "sf") as.data.frame(sf::st_drop_geometry(x)) else none(length(x))
    at <- sf::st_coordinates(places)
    crs <- sf::st_crs(x)$wkt
    geographic <- sf::st_is_longlat(places)
  } else if (kind == "Spatial") {
    at <- sp::coordinates(x)
    values <- tryCatch(x@data, error = function(e) none(nrow(at)))
    wkt <- comment(x@proj4string)
    crs <- if (is.null(wkt)) x@proj4string@projargs else wkt
    geographic <- isFALSE(sp::is.projected(x))
  } else if (kind == "stars") {
    if (length(dim(x)) != 2L) {
      abort_input("data", sprintf("stars with %d dimensions", length(dim(x))),
                  "stars with the dimensions x and y alone")
    }
    rows <- as.data.frame(x)
    values <- rows[-(1:2)]
    at <- as.matrix(rows[1:2])
    crs <- sf::st_crs(x)$wkt
    geographic <- sf::st_is_longlat(sf::st_crs(x))
  } else {
    raster <- kind == "SpatRaster"
    values <- if (raster) terra::as.data.frame(x, na.rm = FALSE) else terra::as.data.frame(x)
    at <- if (raster) terra::xyFromCell(x, seq_len(terra::ncell(x))) else
      terra::crds(if (terra::geomtype(x) == "points") x else terra::centroids(x))
    crs <- terra::crs(x)
    geographic <- terra::is.lonlat(x)
  }
  if (nrow(at) == 0L) abort_input(argument, "without places", "of at least one place")
  list(values = values, at = unname(at[, 1:2, drop = FALSE]), geographic = isTRUE(geographic),
       crs = if (!is.null(crs) && !is.na(crs) && nzchar(crs)) crs)
}

# ---- data -----------------------------------------------------------------------------------------------------------

# Returns the call of a formula method with a data frame and a formula for it in place of a spatial object. The
# attribute "place" of the data frame has the names of its coordinates and their reference system.
call_with_places <- function(call, envir) {
  data <- eval(call$data, envir)
  if (!is_spatial(data)) return(call)
  parts <- spatial_parts(data, "data")
  formula <- eval(call$formula, envir)
  n <- ncol(parts$values)
  names <- make.unique(c(names(parts$values), if (parts$geographic) c("lon", "lat") else c("x", "y")))[n + 1:2]
  term <- if (parts$geographic) call("sphere", as.name(names[1L]), as.name(names[2L])) else
    call("+", as.name(names[1L]), as.name(names[2L]))
  if (inherits(formula, "formula") && length(formula) == 3L) {
    environment <- environment(formula)
    if ("." %in% all.vars(formula)) {
      alone <- all(names(parts$values) %in% all.vars(formula[[2L]]))
      if (alone) formula[[3L]] <- 1 else formula <- stats::formula(stats::terms(formula, data = parts$values))
    }
    formula[[3L]] <- if (identical(formula[[3L]], 1)) term else call("+", formula[[3L]], term)
    environment(formula) <- environment
  }
  call$formula <- formula
  frame <- cbind(parts$values, stats::setNames(as.data.frame(parts$at), names))
  call$data <- structure(frame, place = list(names = names, crs = parts$crs))
  call
}

# ---- new rows -------------------------------------------------------------------------------------------------------

# Returns new rows as a data frame with the coordinates of the fit's places; other rows as they are.
rows_at_places <- function(frame, newdata) {
  if (!is_spatial(newdata)) return(newdata)
  place <- frame$place
  if (is.null(place)) {
    if (is.data.frame(newdata)) return(newdata)
    abort_input("newdata", describe(newdata), "a data frame, because the fit is of one")
  }
  parts <- spatial_parts(newdata, "newdata")
  from <- parts$crs
  to <- place$crs
  at <- parts$at
  if (!is.null(from) && !is.null(to) && !identical(from, to)) {
    if (!requireNamespace("sf", quietly = TRUE)) {
      abort_input("newdata", "in another reference system", "in that of the data",
                  hint = "With the package sf installed, coordinates are transformed.")
    }
    if (sf::st_crs(from) != sf::st_crs(to)) at <- sf::sf_project(from, to, at)
  }
  cbind(parts$values[setdiff(names(parts$values), place$names)], stats::setNames(as.data.frame(at), place$names))
}

# Returns predictions (a vector, a matrix, or a list of fit and se.fit) in the places of `x`, in its class.
predictions_at <- function(x, predicted) {
  if (is.list(predicted)) predicted <- cbind(fit = predicted$fit, se.fit = predicted$se.fit)
  values <- if (is.matrix(predicted)) as.data.frame(predicted) else data.frame(fit = unname(predicted))
  if (names(values)[1L] == "fit.fit") names(values) <- sub("^fit[.]", "", names(values))
  row.names(values) <- NULL
  if (inherits(x, c("sf", "sfc"))) return(sf::st_sf(values, geometry = sf::st_geometry(x)))
  if (inherits(x, "Spatial")) return(sp::addAttrToGeom(sp::geometry(x), values, match.ID = FALSE))
  if (inherits(x, "stars")) {
    return(stars::st_as_stars(lapply(values, array, dim(x)), dimensions = stars::st_dimensions(x)))
  }
  if (inherits(x, "SpatVector")) {
    terra::values(x) <- values
    return(x)
  }
  out <- terra::rast(x, nlyrs = ncol(values))
  out <- terra::setValues(out, as.matrix(values))
  names(out) <- names(values)
  out
}

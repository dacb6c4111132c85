# Converts points on the globe (sphere()) and times (Date, POSIXct) to numeric columns.

#' Fit and predict on the globe
#'
#' Turns longitudes and latitudes into an input of [pfdtc()] with distances through the globe. Neighbours across the
#' date line or a pole stay neighbours. In a formula, write `y ~ sphere(lon, lat) + other` instead of `y ~ lon + lat`.
#' @param lon,lat longitudes and latitudes in degrees, of equal length or one number. Longitudes are modulo 360.
#' @return A numeric matrix of class `pfdtc_sphere` with a row for each place. Its three columns are coordinates in km
#'   from the centre of a globe with radius 6371 km.
#' @details The distance between two places is the chord, the straight line through the globe. With chords every kernel
#'   is positive semidefinite, and nearest neighbours are found as for other inputs. A chord is shorter than the path on
#'   the surface by 0.1 % at 1,000 km and by 10 % at 10,000 km. `sphere(lon, lat)` has one lengthscale, in km; `print()`
#'   also shows it in degrees. Other inputs have their own lengthscales.
#'
#'   In a kernel, `inputs = ~ sphere(lon, lat)` selects this term. [predict()][predict.gp_fit] takes `lon` and `lat`
#'   from `newdata`. Figures have panels for longitude and latitude. A fit with both but without `sphere()`
#'   sends a message when the length of a degree varies by a factor of 1.5, or longitudes span 90 degrees.
#'
#'   If `data` is an object of the package \pkg{sf}, \pkg{sp}, \pkg{terra} or \pkg{stars}, its coordinates are added to
#'   the formula. `y ~ 1` uses only the coordinates, `y ~ a` the coordinates and `a`. Longitudes and latitudes become
#'   `sphere(lon, lat)`, other coordinates `x + y`. Lines and polygons are represented by their centroids, rasters by
#'   the centres of their cells. `predict()` accepts such an object as `newdata`, transforms it to the reference system
#'   of the fit if necessary, and returns an object of the same class.
#' @seealso [pfdtc()], [kernel_se()], `vignette("places")`
#' @examples
#' sphere(c(-180, 180), 0)
#' fit <- pfdtc(depth ~ sphere(long, lat), quakes[1:200, ], kernel = kernel_matern(3/2),
#'              noise = 2500)
#' fit
#' predict(fit, data.frame(long = c(179, -179), lat = -20))
#' plot(fit, which = "map", inputs = c("long", "lat"))
#' @export
sphere <- function(lon, lat) {
  for (name in c("lon", "lat")) check_given(name, "Write sphere(lon, lat), in degrees.")
  check_degrees <- function(v, argument) {
    refuse_if(!is_plain_numeric(v) || is.logical(v) && !all(is.na(v)) || any(is.infinite(v)), argument, describe(v),
              "finite numbers in degrees")
    as.vector(v)
  }
  lon <- check_degrees(lon, "lon")
  lat <- check_degrees(lat, "lat")
  refuse_if(length(lon) != length(lat) && min(length(lon), length(lat)) != 1L, "lat",
            sprintf("has length %d, but `lon` has length %d", length(lat), length(lon)))
  beyond <- which(abs(lat) > 90)[1L]
  refuse_if(!is.na(beyond), "lat", lat[beyond], "between -90 and 90",
            hint = "Write longitude first, as in sphere(lon, lat).", where = sprintf("element %d", beyond))
  turn <- lon %% 360 / 180
  flat <- cospi(lat / 180)
  on_sphere(cbind(x = flat * cospi(turn), y = flat * sinpi(turn), z = sinpi(lat / 180)) * earth_radius)
}

earth_radius <- 6371.0088 # the mean radius, in km

# Gives coordinates x the class that sphere() returns. Adding 0 turns -0 into 0, so that equal points have equal bits.
on_sphere <- function(x) structure(x + 0, class = "pfdtc_sphere")

#' @export
`[.pfdtc_sphere` <- function(x, i, j, ..., drop = TRUE) {
  if (nargs() == 2L || !missing(j)) NextMethod() else on_sphere(unclass(x)[i, , drop = FALSE])
}

# Returns longitude and latitude of points on the sphere. Longitudes are within 180 degrees of `middle`.
degrees_of <- function(x, middle = 0) {
  lon <- atan2(x[, 2L], x[, 1L]) * 180 / pi
  cbind(lon = lon - 360 * round((lon - middle) / 360), lat = atan2(x[, 3L], sqrt(x[, 1L]^2 + x[, 2L]^2)) * 180 / pi)
}

# Returns the kind "sphere", "time", "factor", "matrix", "logical" or "numeric" of an input. Other values have kind NA.
variable_kind <- function(v) {
  if (inherits(v, "pfdtc_sphere")) return("sphere")
  if (inherits(v, c("Date", "POSIXt"))) return("time")
  if (is.factor(v) || (is.character(v) && is.null(dim(v)))) return("factor")
  if (inherits(v, c("difftime", "yearmon", "yearqtr"))) return("numeric")
  if (!is_plain_numeric(v) || is.data.frame(v) || length(dim(v)) > 2L) return(NA_character_)
  if (length(dim(v)) == 2L) "matrix" else if (is.logical(v)) "logical" else "numeric"
}

# Returns fields such as `unit` for variables that are points on the globe, times or time differences. Times become days
# since `origin`, the earliest second in the data, because seconds since 1970 would lose digits.
unit_fields <- function(v, name, kind) {
  if (inherits(v, "pfdtc_series_time")) return(list(period = c(cycle = 1)))
  if (inherits(v, "difftime") || inherits(v, "units") && isNamespaceLoaded("units"))
    return(list(unit = as.character(units(v))))
  if (kind == "time") {
    first <- if (all(is.na(v))) 0 else floor(min(seconds_of(v), na.rm = TRUE))
    zone <- if (!inherits(v, "Date")) attr(as.POSIXct(v), "tzone")[1L] %||% ""
    return(list(unit = "days", origin = first, date = inherits(v, "Date"), zone = zone))
  }
  if (kind != "sphere") return(NULL)
  term <- tryCatch(as.list(str2lang(name))[2:3], error = function(e) list("lon", "lat"))
  list(unit = "km", middle = degrees_of(t(colMeans(unclass(v), na.rm = TRUE)))[[1L]], axes = vapply(term, deparse1, ""))
}

# Times of a ts object with a frequency above 1 have this class, because model.frame() would drop the frequency.
#' @export
`[.pfdtc_series_time` <- function(x, i) structure(unclass(x)[i], class = "pfdtc_series_time")

# Returns time differences and values with units as numbers in `unit` (default: their own). Returns others unchanged.
in_unit <- function(v, unit = NULL) {
  if (is.null(unit_fields(v, "", "numeric")$unit)) return(v)
  if (!is.null(unit)) units(v) <- unit
  as.numeric(v)
}

seconds_of <- function(v) as.numeric(v) * if (inherits(v, "Date")) 86400 else 1

# Returns the values of a variable as numbers. Times become days since spec$origin. Time differences get the fit's unit.
numbers_of <- function(spec, v) {
  v <- in_unit(v, spec$unit)
  if (identical(spec$kind, "time") && identical(variable_kind(v), "time")) (seconds_of(v) - spec$origin) / 86400 else
    as.double(v)
}

# Returns days since spec$origin as dates, or as times in the time zone of the data.
times_of <- function(spec, days) {
  seconds <- as.POSIXct(round(days * 86400 + spec$origin, 5), origin = "1970-01-01", tz = spec$zone %||% "UTC")
  if (spec$date) as.Date(seconds) else seconds
}

# Columns with these names are coordinates, on the globe or in a plane.
horizontal_names <- "^(lon|long|lng|longitude|x|easting)$"
vertical_names <- "^(lat|latitude|y|northing)$"

are_coordinates <- function(names) grepl(horizontal_names, names[1L], TRUE) && grepl(vertical_names, names[2L], TRUE)

# Objects of the packages sf, sp, terra and stars can be data or new rows. They become data frames with two columns of
# coordinates. The formula gets the term sphere(lon, lat) for longitude and latitude, else x + y.

spatial_classes <- c("sf", "sfc", "Spatial", "SpatVector", "SpatRaster", "stars")
is_spatial <- function(x) inherits(x, spatial_classes)
spatial_class <- function(x) spatial_classes[inherits(x, spatial_classes, which = TRUE) > 0L][1L]

# Splits a spatial object into list(values, at, crs, geographic): data frame, matrix of coordinates, reference system as
# text or NULL, and TRUE for longitude and latitude. Lines and polygons are represented by their centroids.
spatial_parts <- function(x, argument) {
  none <- function(n) data.frame(row.names = seq_len(n))
  kind <- spatial_class(x)
  needs_package(switch(kind, sf = , sfc = "sf", Spatial = "sp", stars = "stars", "terra"),
                sprintf("`%s` of class \"%s\"", argument, kind))
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
    crs <- comment(x@proj4string) %||% x@proj4string@projargs
    geographic <- isFALSE(sp::is.projected(x))
  } else if (kind == "stars") {
    refuse_if(length(dim(x)) != 2L, "data", sprintf("is a stars object with %d dimensions", length(dim(x))),
              hint = "Only x and y are possible.")
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
  refuse_if(nrow(at) == 0L, argument, "has no places")
  list(values = values, at = unname(at[, 1:2, drop = FALSE]), geographic = isTRUE(geographic),
       crs = if (!is.null(crs) && !is.na(crs) && nzchar(crs)) crs)
}

# Returns the call of a formula method. A spatial object in its argument `data` becomes a data frame, and the formula
# gets the coordinates. The attribute "place" of the data frame has their names and their reference system.
call_with_places <- function(call, envir) {
  data <- eval(call$data, envir)
  if (!is_spatial(data)) return(call)
  parts <- spatial_parts(data, "data")
  formula <- eval(call$formula, envir)
  own <- if (parts$geographic) c("lon", "lat") else c("x", "y")
  names <- utils::tail(make.unique(c(names(parts$values), own)), 2L)
  term <- call(if (parts$geographic) "sphere" else "+", as.name(names[1L]), as.name(names[2L]))
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

# Returns spatial new rows as a data frame with the fit's coordinates. Other new rows are returned unchanged.
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
    needs_package("sf", "A place in another reference system than the data")
    if (sf::st_crs(from) != sf::st_crs(to)) at <- sf::sf_project(from, to, at)
  }
  cbind(parts$values[setdiff(names(parts$values), place$names)], stats::setNames(as.data.frame(at), place$names))
}

# Returns predictions (a vector, a matrix, or a list of fit and se.fit) as a spatial object like `x`, at its locations.
predictions_at <- function(x, predicted) {
  values <- as_table(predicted)
  row.names(values) <- NULL
  switch(spatial_class(x), sf = , sfc = sf::st_sf(values, geometry = sf::st_geometry(x)),
         Spatial = sp::addAttrToGeom(sp::geometry(x), values, match.ID = FALSE),
         stars = stars::st_as_stars(lapply(values, array, dim(x)), dimensions = stars::st_dimensions(x)),
         SpatVector = terra::`values<-`(x, value = values), {
           stats::setNames(terra::setValues(terra::rast(x, nlyrs = ncol(values)), as.matrix(values)), names(values))
         })
}

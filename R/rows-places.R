# Places on the globe and times as inputs: sphere(), Date, POSIXct, and how they become columns.

#' Places on the globe
#'
#' Turns longitudes and latitudes into an input of [pfdtc()] whose distances are right everywhere: across the date
#' line, near the poles and between continents. Use it in a formula, `y ~ sphere(lon, lat) + other`, instead of
#' `y ~ lon + lat`.
#'
#' @param lon,lat longitudes and latitudes in degrees, of the same length or one number. Longitudes may have any range:
#'   -180 to 180 and 0 to 360 mean the same places.
#' @return A numeric matrix of class `pfdtc_sphere` with a row for each place. Its three columns are coordinates in km
#'   from the centre of a globe with radius 6371 km.
#' @details The distance of two places is their chord, the straight line through the globe. So every kernel is positive
#'   semidefinite, and nearest neighbours are found as for other inputs. A chord is shorter than the way on the surface
#'   by 0.1 % at 1,000 km and by 10 % at 10,000 km. The place has one lengthscale, in km; `print()` adds it in degrees.
#'   Other inputs of the formula keep their own.
#'
#'   In a kernel, `inputs = ~ sphere(lon, lat)` reads the term of the formula. [predict()][predict.gp_fit] takes `lon`
#'   and `lat` from `newdata`. Figures have panels for longitude and latitude.
#'
#'   An object of the package \pkg{sf}, \pkg{sp}, \pkg{terra} or \pkg{stars} as `data` brings its places: `y ~ 1` fits
#'   them alone, `y ~ a` beside `a`. Longitudes and latitudes become `sphere(lon, lat)`, other coordinates `x + y`.
#'   Lines and polygons stand at their centroids, rasters at their cells. `predict()` at such an object returns one of
#'   the same class, and takes another reference system.
#'
#'   A fit sends a message if columns that are named as longitude and latitude are used as plain numbers where that
#'   distorts distances.
#' @section Invariants: -180 and 180 give the same numbers, and so do all longitudes at a pole.
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
  at <- Map(function(v, argument) {
    if (!is_plain_numeric(v) || is.logical(v) && !all(is.na(v)) || any(is.infinite(v))) {
      abort_input(argument, describe(v), "finite numbers in degrees")
    }
    as.vector(v)
  }, list(lon, lat), c("lon", "lat"))
  lon <- at[[1L]]
  lat <- at[[2L]]
  if (length(lon) != length(lat) && min(length(lon), length(lat)) != 1L) {
    abort_input("lat", sprintf("%d values", length(lat)), sprintf("as long as `lon` (%d values)", length(lon)))
  }
  beyond <- which(abs(lat) > 90)[1L]
  if (!is.na(beyond)) {
    abort_input("lat", format(lat[beyond]), "between -90 and 90",
                hint = "Write longitude first, as in sphere(lon, lat).")
  }
  turn <- lon %% 360 / 180
  flat <- cospi(lat / 180)
  on_sphere(cbind(x = flat * cospi(turn), y = flat * sinpi(turn), z = sinpi(lat / 180)) * earth_radius)
}

# Returns the formula with sphere() in its environment, where a package is not attached.
with_sphere <- function(formula) {
  around <- environment(formula)
  used <- !is.null(around) && "sphere" %in% all.names(formula)
  if (!used || exists("sphere", around, mode = "function")) return(formula)
  environment(formula) <- list2env(list(sphere = sphere), parent = around)
  formula
}

# The mean radius of the Earth in km.
earth_radius <- 6371.0088

# Makes a sphere() value. Adding 0 removes the sign of 0, so that equal places have equal bits.
on_sphere <- function(x) structure(x + 0, class = "pfdtc_sphere")

#' @export
`[.pfdtc_sphere` <- function(x, i, j, ..., drop = TRUE) {
  if (nargs() == 2L || !missing(j)) return(NextMethod())
  on_sphere(unclass(x)[i, , drop = FALSE])
}

# Returns longitude and latitude of rows of sphere(), with longitudes within 180 degrees of `middle`.
degrees_of <- function(x, middle = 0) {
  lon <- atan2(x[, 2L], x[, 1L]) * 180 / pi
  cbind(lon = lon - 360 * round((lon - middle) / 360), lat = atan2(x[, 3L], sqrt(x[, 1L]^2 + x[, 2L]^2)) * 180 / pi)
}

# ---- variables of a formula -----------------------------------------------------------------------------------------

# Returns "sphere" or "time" for a variable of that kind, else NULL.
place_kind <- function(v) if (inherits(v, "pfdtc_sphere")) "sphere" else if (inherits(v, c("Date", "POSIXct"))) "time"

# Returns how a place or a time is coded, in the form of coded_variables(); NULL for other variables. Times count days
# from `origin`, the first second of the data, so that seconds since 1970 lose no digits.
code_place <- function(v, name) {
  kind <- place_kind(v)
  of_series <- inherits(v, "pfdtc_series_time")
  if (is.null(kind) && !of_series) return(NULL)
  spec <- list(name = name, kind = c(kind, "numeric")[1L], levels = NULL, width = 1L, columns = name)
  if (of_series) return(c(spec, list(period = c(cycle = 1))))
  if (kind == "time") {
    first <- if (all(is.na(v))) 0 else floor(min(seconds_of(v), na.rm = TRUE))
    return(c(spec, list(unit = "days", origin = first, date = inherits(v, "Date"))))
  }
  middle <- colMeans(unclass(v), na.rm = TRUE)
  term <- tryCatch(as.list(str2lang(name))[2:3], error = function(e) list("lon", "lat"))
  spec[c("width", "columns")] <- list(3L, paste0(name, c("x", "y", "z")))
  c(spec, list(unit = "km", middle = degrees_of(t(middle))[[1L]], axes = vapply(term, deparse1, "")))
}

# Returns the time of a ts, with a class if its frequency is above 1. model.frame() would drop the class of a ts.
series_time <- function(x) {
  time <- as.numeric(stats::time(x))
  if (stats::frequency(x) > 1) structure(time, class = "pfdtc_series_time") else time
}

#' @export
`[.pfdtc_series_time` <- function(x, i) structure(unclass(x)[i], class = "pfdtc_series_time")

# Returns the columns of each variable.
columns_of_variables <- function(variables) {
  width <- vapply(variables, `[[`, 1L, "width")
  unname(split(seq_len(sum(width)), rep(seq_along(width), width)))
}

# Returns the outline of the inputs (make_frame()) with corners of longitude and latitude in place of those of columns.
outline_places <- function(frame, x) {
  own <- columns_of_variables(frame$variables)
  for (i in which(vapply(frame$variables, function(v) v$kind == "sphere", NA))) {
    at <- degrees_of(x[, own[[i]], drop = FALSE], frame$variables[[i]]$middle)
    at <- apply(at, 2L, stats::quantile, c(0, 0.5, 1), names = FALSE)
    frame$outline[, own[[i]]] <- sphere(at[, 1L], at[, 2L])
  }
  frame$outline
}

seconds_of <- function(v) as.numeric(v) * if (inherits(v, "Date")) 86400 else 1

# Returns the values of a variable as numbers, coded as in the data.
numbers_of <- function(spec, v) {
  if (!identical(spec$kind, "time") || is.null(place_kind(v))) return(as.double(v))
  (seconds_of(v) - spec$origin) / 86400
}

# Returns days as a Date or a POSIXct.
times_of <- function(spec, days) {
  seconds <- as.POSIXct(days * 86400 + spec$origin, origin = "1970-01-01", tz = "UTC")
  if (spec$date) as.Date(seconds) else seconds
}

# ---- longitude and latitude as plain numbers ------------------------------------------------------------------------

longitude_names <- "^(lon|long|lng|longitude)$"
latitude_names <- "^(lat|latitude)$"

# Names of coordinates, flat or not.
horizontal_names <- "^(lon|long|lng|longitude|x|easting)$"
vertical_names <- "^(lat|latitude|y|northing)$"

# Sends a message if columns named as longitude and latitude are plain numbers and that distorts distances: a degree of
# longitude is half as long again at one place than at another, or longitudes span a quarter of the globe.
message_if_degrees <- function(x) {
  at <- c(grep(longitude_names, colnames(x), TRUE)[1L], grep(latitude_names, colnames(x), TRUE)[1L])
  if (anyNA(at)) return(invisible())
  lon <- range(x[, at[1L]])
  lat <- x[, at[2L]]
  if (!isTRUE(max(abs(lat)) <= 90 && max(abs(lon)) <= 360)) return(invisible())
  width <- cospi(range(abs(lat)) / 180)
  if (width[1L] < 1.5 * width[2L] && diff(lon) < 90) return(invisible())
  names <- colnames(x)[at]
  tell_classed("degrees", sprintf(paste(
    "`%s` and `%s` are used as plain numbers, though a degree of longitude is up to %.0f km and down to %.0f km long",
    "in the data. sphere(%s, %s) in the formula has the right distances."), names[1L], names[2L], 111.2 * width[1L],
    111.2 * width[2L], names[1L], names[2L]))
}

# Deterministic simulators on the best of 300 Latin hypercubes by distance: RMSE and NLPD of f at 2,000 random inputs,
# by default, with a small starting noise, and with noise = 0:  Rscript bench/interpolation.R > bench/results/interpolation.txt
suppressPackageStartupMessages(library(pfdtc)); options(pfdtc.threads = 1L)
maximin <- function(n, d, seed) { set.seed(seed); best <- NULL; bd <- -1
  for (i in 1:300) { x <- sapply(1:d, function(j) (sample(n) - .5) / n); m <- min(dist(x)); if (m > bd) { bd <- m; best <- x } }; colnames(best) <- letters[1:d]; best }
branin <- function(x) { u <- 15*x[,1]-5; v <- 15*x[,2]; (v-5.1/(4*pi^2)*u^2+5/pi*u-6)^2+10*(1-1/(8*pi))*cos(u)+10 }
borehole <- function(x) { rw <- .05+.1*x[,1]; r <- 100+49900*x[,2]; Tu <- 63070+52530*x[,3]; Hu <- 990+120*x[,4]; Tl <- 63.1+52.9*x[,5]; Hl <- 700+120*x[,6]; L <- 1120+560*x[,7]; Kw <- 9855+2190*x[,8]
 2*pi*Tu*(Hu-Hl)/(log(r/rw)*(1+2*L*Tu/(log(r/rw)*rw^2*Kw)+Tu/Tl)) }
run <- function(name, f, n, d, seed) { x <- maximin(n, d, seed); y <- f(x); set.seed(99); t <- matrix(runif(2000*d),2000); colnames(t) <- letters[1:d]; ty <- f(t)
 one <- function(how, ...) { set.seed(1); fit <- suppressWarnings(suppressMessages(pfdtc(x, y, ..., control = list(progress = FALSE)))); p <- predict(fit, t, se.fit = TRUE, type = "response")
   cat(sprintf("%s %d seed %d %-10s rmse %.4g nlpd %.3f noise/var %.2g %s\n", name, n, seed, how, sqrt(mean((p$fit-ty)^2)), -mean(dnorm(ty, p$fit, p$se.fit, TRUE)), fit$noise/var(y), fit$kernel$label)) }
 one("default"); one("1e-6", noise = 1e-6*var(y))
 one("noise = 0", noise = 0) }
for (s in 1:3) run("branin", branin, 20, 2, s); for (s in 1:2) run("branin", branin, 40, 2, s); run("borehole", borehole, 80, 8, 1)

# Writes the figures of vignettes as PNG files with at most 48 colours, a third as large as those of R. bmp() draws
# them. Colours with the same first four bits of red, green and blue become their mean. Beyond 48 colours the nearest
# one is used.

# Replaces a bitmap file of 24 or 8 bits a pixel by a PNG file. Other files stay.
small_png <- function(file) {
  bytes <- readBin(file, "raw", file.size(file))
  if (!identical(bytes[1:2], charToRaw("BM"))) return(file)
  number <- function(at) readBin(bytes[at + 1:4], "integer", endian = "little")
  width <- number(18)
  height <- number(22)
  size <- as.integer(bytes[29]) / 8                                   # bytes for each pixel
  rows <- matrix(as.integer(bytes[-seq_len(number(10))]), ceiling(size * width / 4) * 4)
  pixels <- rows[seq_len(size * width), height:1]                     # the bottom row comes first
  if (size == 1) pixels <- matrix(as.integer(bytes[54 + 1:1024]), 4)[1:3, pixels + 1L]
  rgb <- t(matrix(pixels, 3))[, 3:1]

  key <- drop(rgb %/% 16L %*% c(256, 16, 1)) + 1
  cells <- seq_len(4096)
  used <- tabulate(key, 4096)
  mean <- apply(rgb, 2, function(v) tapply(v, factor(key, cells), mean))
  palette <- utils::head(order(-used), min(48, sum(used > 0)))
  index <- match(cells, palette)
  for (cell in which(is.na(index) & used > 0)) index[cell] <- which.min(colSums((t(mean[palette, ]) - mean[cell, ])^2))
  lines <- rbind(0, matrix(index[key] - 1, width))                    # 0 means a line without a filter

  header <- c(big_endian(c(width, height)), as.raw(c(8, 3, 0, 0, 0))) # 8 bits, with a palette
  writeBin(c(as.raw(c(137, 80, 78, 71, 13, 10, 26, 10)), png_chunk("IHDR", header),
             png_chunk("PLTE", as.raw(round(t(mean[palette, ])))),
             png_chunk("IDAT", memCompress(as.raw(lines), "gzip")), png_chunk("IEND", raw())), file)
  file
}

big_endian <- function(v) writeBin(as.integer(v), raw(), endian = "big")

png_chunk <- function(type, data) {
  bytes <- c(charToRaw(type), data)
  c(big_endian(length(data)), bytes, big_endian(checksum(bytes)))
}

# Returns the CRC-32 of the bytes.
checksum <- function(bytes) {
  table <- 0:255
  for (bit in 1:8) table <- bitwXor(bitwShiftR(table, 1L), ifelse(table %% 2 == 0, 0L, -306674912L))
  crc <- -1L
  for (byte in as.integer(bytes)) crc <- bitwXor(bitwShiftR(crc, 8L), table[bitwAnd(bitwXor(crc, byte), 255L) + 1L])
  bitwNot(crc)
}

knitr::opts_chunk$set(dev = "bmp", fig.ext = "png", dpi = 96)
local({
  plain <- knitr::knit_hooks$get("plot")
  knitr::knit_hooks$set(plot = function(x, options) plain(small_png(x), options))
})

# Chunks with margins = TRUE have narrow margins.
knitr::knit_hooks$set(margins = function(before, options, envir) {
  if (before) graphics::par(mar = c(3.6, 3.6, 1.6, 0.5), mgp = c(2.3, 0.8, 0))
})

-- Writes formulas as MathML without their TeX source, which would be a quarter of the page. Older versions of pandoc write both.
function Math(formula)
  if not pandoc.write then return nil end
  local page = pandoc.write(pandoc.Pandoc{pandoc.Plain{formula}}, "html", {html_math_method = "mathml"})
  page = page:gsub("<annotation.-</annotation>", ""):gsub("</?semantics>", "")
  page = page:gsub(" xmlns=\"http://www.w3.org/1998/Math/MathML\"", "") -- HTML5 needs no namespace
  page = page:gsub("<mo stretchy=\"true\" form=\"%a+fix\">([()%[%]])", "<mo>%1") -- brackets of normal size
  return pandoc.RawInline("html", page)
end

-- Formulas as MathML without their source beside it: a quarter of the page. Older pandocs write both.
function Math(formula)
  if not pandoc.write then return nil end
  local page = pandoc.write(pandoc.Pandoc{pandoc.Plain{formula}}, "html", {html_math_method = "mathml"})
  page = page:gsub("<annotation.-</annotation>", ""):gsub("</?semantics>", "")
  page = page:gsub(" xmlns=\"http://www.w3.org/1998/Math/MathML\"", "") -- HTML5 needs none
  page = page:gsub("<mo stretchy=\"true\" form=\"%a+fix\">([()%[%]])", "<mo>%1") -- as brackets are
  return pandoc.RawInline("html", page)
end

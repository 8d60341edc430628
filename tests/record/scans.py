"""What a scan over layers hands from the forward to the backward pass, as JAX traces a step."""


def inner(equation):
    """Programs within an equation."""
    for value in equation.params.values():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            one = getattr(one, "jaxpr", one)
            if hasattr(one, "eqns"):
                yield one


def residuals(program):
    """Of scans whose stacked outputs a scan in reverse takes: length and outputs."""
    out = []
    scans = [one for one in program.eqns if one.primitive.name == "scan"]
    taken = {id(value) for one in scans if one.params["reverse"] for value in one.invars}
    for one in scans:
        stacked = [value for value in one.outvars[one.params["num_carry"] :] if id(value) in taken]
        if stacked and not one.params["reverse"]:
            kept = [[str(value.aval.dtype), list(value.aval.shape[1:])] for value in stacked]
            out.append({"layers": one.params["length"], "kept": sorted(kept)})
    for one in program.eqns:
        for within in inner(one):
            out += residuals(within)
    return out

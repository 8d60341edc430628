project = "How we train our 7B model"
html_theme = "alabaster"
# In place of SHARDSCOPE stands the address where Shardscope is served.
html_js_files = [("SHARDSCOPE/embed.js", {"type": "module"})]
